"""What a program prints of a Haystack result: the answer, the whole."""

import json
import sys

from pipelines import run

result = run(sys.argv[1])
(answer,) = result["answers"]["answers"]
print(json.dumps(answer.to_dict(), default=lambda one: one.to_dict()))
print(json.dumps(result, default=lambda one: one.to_dict()))
