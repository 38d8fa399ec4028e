"""Files: whole or absent, sealed against damage, locked while in use; those of others are read with suspicion."""

from aggrevated.files.atomic import storage_errors as storage_errors
from aggrevated.files.atomic import sweep as sweep
from aggrevated.files.atomic import write_atomically as write_atomically
from aggrevated.files.bounded_json import MAX_JSON as MAX_JSON
from aggrevated.files.bounded_json import decoded as decoded
from aggrevated.files.bounded_json import parsed as parsed
from aggrevated.files.foreign import in_short as in_short
from aggrevated.files.foreign import plain_file as plain_file
from aggrevated.files.foreign import read_bounded as read_bounded
from aggrevated.files.foreign import start_of as start_of
from aggrevated.files.json_files import Facts as Facts
from aggrevated.files.json_files import read_json as read_json
from aggrevated.files.json_files import read_lines as read_lines
from aggrevated.files.json_files import write_json as write_json
from aggrevated.files.locks import only_one as only_one
from aggrevated.files.sealed import digest as digest
from aggrevated.files.sealed import seal as seal
from aggrevated.files.sealed import unseal as unseal
from aggrevated.files.state_dicts import read_state_dict as read_state_dict
from aggrevated.files.zips import chunks as chunks
from aggrevated.files.zips import open_zip as open_zip
