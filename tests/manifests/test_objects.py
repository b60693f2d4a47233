"""What `grapnel validate` says of objects that are right; those that are not stand in wrong/objects.txt."""

from e2e.grapnel import Grapnel

OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {generateName: train-}
spec:
  replicatedJobs:
    - name: w
      template: {spec: {template: {spec: {containers: [{name: c, image: i, futureField: 1}]}}}}
---
apiVersion: grapnel.dev/v1alpha1
kind: Experiment
metadata: {name: e}
spec:
  operator: jax
  image: i
  command: x
  types: {worker: {count: 1, resources: {cpus: 1, ramRatio: 2}}}
"""


def test_says_of_each_object_that_it_is_valid(tmp_path):
    ended = Grapnel(tmp_path)("validate", "-", input=OBJECTS)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "standard input: ConfigMap settings is not checked: its kind is not ours",
        "standard input: JobSet train- is valid",
        "standard input: Experiment e is valid"]
