"""Files: whole or absent, sealed against damage, locked while in use; those of others are read with suspicion."""

from aggrevated.files.atomic import is_leftover as is_leftover
from aggrevated.files.atomic import storage_errors as storage_errors
from aggrevated.files.atomic import sweep as sweep
from aggrevated.files.atomic import write_atomically as write_atomically
from aggrevated.files.foreign import read_bounded as read_bounded
from aggrevated.files.foreign import start_of as start_of
from aggrevated.files.journal import Journal as Journal
from aggrevated.files.journal import read_journal as read_journal
from aggrevated.files.journal import rewrite_journal as rewrite_journal
from aggrevated.files.journal import seals as seals
from aggrevated.files.json_files import Facts as Facts
from aggrevated.files.json_files import read_json as read_json
from aggrevated.files.json_files import write_json as write_json
from aggrevated.files.locks import only_one as only_one
from aggrevated.files.sealed import digest as digest
from aggrevated.files.sealed import seal as seal
from aggrevated.files.sealed import unseal as unseal
from aggrevated.files.sealed_json import seal_json as seal_json
from aggrevated.files.sealed_json import seal_new_json as seal_new_json
from aggrevated.files.sealed_json import unseal_json as unseal_json
