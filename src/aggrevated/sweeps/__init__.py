"""Many runs, to find good settings: what varies, which trials are made, and the folder that remembers them."""
