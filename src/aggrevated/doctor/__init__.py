"""Doctor: checks of an environment and its expert before training, and the method that they recommend."""

from aggrevated.doctor.diagnosis import Diagnosis as Diagnosis
from aggrevated.doctor.diagnosis import diagnose as diagnose
from aggrevated.doctor.findings import Finding as Finding
