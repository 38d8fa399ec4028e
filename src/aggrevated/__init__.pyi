"""The public face, for type checkers; a test keeps it equal to `__init__.py`."""

from aggrevated.algorithm import Iteration as Iteration
from aggrevated.algorithm import Learner as Learner
from aggrevated.algorithm import aggrevated as aggrevated
from aggrevated.config import Config as Config
from aggrevated.config.resolving import resolve as resolve
from aggrevated.cost_to_go import (
    CostToGo as CostToGo,
)
from aggrevated.cost_to_go import (
    Oracle as Oracle,
)
from aggrevated.cost_to_go import (
    OracleSettings as OracleSettings,
)
from aggrevated.cost_to_go import (
    Tells as Tells,
)
from aggrevated.cost_to_go.advantage import Advantage as Advantage
from aggrevated.cost_to_go.advantage import Taken as Taken
from aggrevated.cost_to_go.disagreement import disagreement as disagreement
from aggrevated.cost_to_go.entropy_bonus import EntropyBonus as EntropyBonus
from aggrevated.cost_to_go.monte_carlo import MonteCarlo as MonteCarlo
from aggrevated.cost_to_go.q_star import QStar as QStar
from aggrevated.cost_to_go.realised import Realised as Realised
from aggrevated.cost_to_go.value_function import ValueFunction as ValueFunction
from aggrevated.errors import (
    AggrevatedError as AggrevatedError,
)
from aggrevated.errors import (
    DataError as DataError,
)
from aggrevated.errors import (
    StorageError as StorageError,
)
from aggrevated.errors import (
    UsageError as UsageError,
)
from aggrevated.experts import CriticExpert as CriticExpert
from aggrevated.experts import Expert as Expert
from aggrevated.experts import ValueExpert as ValueExpert
from aggrevated.experts.loading import load_expert as load_expert
from aggrevated.losses import Loss as Loss
from aggrevated.losses import LossSettings as LossSettings
from aggrevated.losses.all_actions import all_actions as all_actions
from aggrevated.losses.likelihood import likelihood as likelihood
from aggrevated.losses.taken_action import taken_action as taken_action
from aggrevated.methods import METHODS as METHODS
from aggrevated.methods import Method as Method
from aggrevated.policies import Actor as Actor
from aggrevated.policies import Policy as Policy
from aggrevated.policies import PolicySettings as PolicySettings
from aggrevated.policies.feed_forward import FeedForwardPolicy as FeedForwardPolicy
from aggrevated.policies.heads import (
    CategoricalHead as CategoricalHead,
)
from aggrevated.policies.heads import (
    GaussianHead as GaussianHead,
)
from aggrevated.policies.heads import (
    Head as Head,
)
from aggrevated.policies.heads import (
    HeadSettings as HeadSettings,
)
from aggrevated.policies.recurrent import RecurrentPolicy as RecurrentPolicy
from aggrevated.policies.window import WindowPolicy as WindowPolicy
from aggrevated.roll_in import Mixture as Mixture
from aggrevated.runs.records import Metrics as Metrics
from aggrevated.runs.records import Result as Result
from aggrevated.runs.run import Run as Run
from aggrevated.runs.run import execute as execute
from aggrevated.runs.run import train as train
from aggrevated.schedules import geometric as geometric
from aggrevated.schedules import linear as linear
from aggrevated.settings import Settings as Settings
from aggrevated.settings import setting as setting
from aggrevated.simulators import Restricted as Restricted
from aggrevated.simulators import Simulator as Simulator
from aggrevated.simulators import Stochastic as Stochastic
from aggrevated.simulators.acrobot import Acrobot as Acrobot
from aggrevated.simulators.cartpole import CartPole as CartPole
from aggrevated.simulators.gymnasium import GymnasiumSimulator as GymnasiumSimulator
from aggrevated.simulators.mujoco import MuJoCo as MuJoCo
from aggrevated.simulators.partial import Partial as Partial
from aggrevated.simulators.tabular import Tabular as Tabular
from aggrevated.simulators.tabular import TabularExpert as TabularExpert
from aggrevated.starts import StartSettings as StartSettings
from aggrevated.starts.supervised import supervised as supervised
from aggrevated.tasks import Row as Row
from aggrevated.tasks import Task as Task
from aggrevated.tasks import Tuned as Tuned
from aggrevated.tasks import find_task as find_task
from aggrevated.trajectories import Trajectories as Trajectories
from aggrevated.updates import Step as Step
from aggrevated.updates import Update as Update
from aggrevated.updates import UpdateSettings as UpdateSettings
from aggrevated.updates.exponentiated import Exponentiated as Exponentiated
from aggrevated.updates.follow_the_leader import FollowTheLeader as FollowTheLeader
from aggrevated.updates.natural import Natural as Natural
from aggrevated.updates.regular import Regular as Regular
from aggrevated.version import __version__ as __version__
from aggrevated.worlds import (
    EvaluationSettings as EvaluationSettings,
)
from aggrevated.worlds import (
    Score as Score,
)
from aggrevated.worlds import (
    World as World,
)
from aggrevated.worlds import (
    WorldSettings as WorldSettings,
)
from aggrevated.worlds.control import Control as Control
