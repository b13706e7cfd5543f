"""Bodies that Schemathesis cannot make by itself."""

import schemathesis
from hypothesis import strategies

schemathesis.openapi.media_type("application/x-tar", strategies.binary(max_size=4096))
