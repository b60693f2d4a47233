#!/usr/bin/env python3
"""Writes src/kube/types/*_types.cpp from the Go sources of Kubernetes' API modules.

usage: make_kube_types.py --modules DIR --version v0.33.13 [--out DIR]

DIR holds k8s.io/api@VERSION, k8s.io/apimachinery@VERSION and k8s.io/apiextensions-apiserver@VERSION,
as `go mod download` leaves them. Only the shape is taken: names, numbers and merge rules.
"""
import argparse
import pathlib
import re

# (package, kinds) whose closure is written. The package's last two parts name it.
PACKAGES = {
    "core/v1": ("api", "core/v1"),
    "apps/v1": ("api", "apps/v1"),
    "batch/v1": ("api", "batch/v1"),
    "autoscaling/v1": ("api", "autoscaling/v1"),
    "coordination/v1": ("api", "coordination/v1"),
    "discovery/v1": ("api", "discovery/v1"),
    "events/v1": ("api", "events/v1"),
    "rbac/v1": ("api", "rbac/v1"),
    "scheduling/v1": ("api", "scheduling/v1"),
    "policy/v1": ("api", "policy/v1"),
    "node/v1": ("api", "node/v1"),
    "networking/v1": ("api", "networking/v1"),
    "storage/v1": ("api", "storage/v1"),
    "authentication/v1": ("api", "authentication/v1"),
    "authorization/v1": ("api", "authorization/v1"),
    "admissionregistration/v1": ("api", "admissionregistration/v1"),
    "meta/v1": ("apimachinery", "pkg/apis/meta/v1"),
    "apiextensions/v1": ("apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
}
ROOTS = {
    "core/v1": ["ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node", "PersistentVolume",
                "PersistentVolumeClaim", "Pod", "ResourceQuota", "Secret", "Service", "ServiceAccount",
                "Binding"],
    "apps/v1": ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    "batch/v1": ["CronJob", "Job"],
    "autoscaling/v1": ["Scale"],
    "coordination/v1": ["Lease"],
    "discovery/v1": ["EndpointSlice"],
    "events/v1": ["Event"],
    "rbac/v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "scheduling/v1": ["PriorityClass"],
    "policy/v1": ["PodDisruptionBudget", "Eviction"],
    "node/v1": ["RuntimeClass"],
    "networking/v1": ["Ingress", "NetworkPolicy"],
    "storage/v1": ["StorageClass"],
    "authentication/v1": ["SelfSubjectReview", "TokenRequest", "TokenReview"],
    "authorization/v1": ["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
                         "SubjectAccessReview"],
    "admissionregistration/v1": ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    "meta/v1": ["DeleteOptions", "PartialObjectMetadata", "Status"],
    "apiextensions/v1": ["CustomResourceDefinition"],
}
GROUPS = {"core/v1": "", "apps/v1": "apps", "batch/v1": "batch", "autoscaling/v1": "autoscaling",
          "policy/v1": "policy", "rbac/v1": "rbac.authorization.k8s.io", "meta/v1": "meta.k8s.io"}

SPECIAL = {
    "meta/v1.Time": "kTime", "meta/v1.MicroTime": "kMicroTime", "meta/v1.Duration": "kDuration",
    "resource.Quantity": "kQuantity", "intstr.IntOrString": "kIntOrString",
    "runtime.RawExtension": "kRaw", "meta/v1.FieldsV1": "kRaw", "apiextensions/v1.JSON": "kRaw",
    "apiextensions/v1.JSONSchemaPropsOrBool": "kSchemaOrBool",
    "apiextensions/v1.JSONSchemaPropsOrArray": "kSchemaOrArray",
    "apiextensions/v1.JSONSchemaPropsOrStringArray": "kSchemaOrStringArray",
}
BASIC = {"string": "kString", "bool": "kBool", "int": "kInt64", "int32": "kInt32", "int64": "kInt64",
         "uint32": "kInt64", "uint64": "kInt64", "float64": "kDouble", "float32": "kDouble"}


class Field:
    def __init__(self, name, go_type, number, comment, tags, inline):
        self.name, self.go_type, self.number = name, go_type, number
        self.comment, self.tags, self.inline = comment, tags, inline


def parse_package(folder):
    """{type name: (comment, fields or aliased Go type)}"""
    types = {}
    for path in sorted(folder.glob("*types*.go")) + sorted(folder.glob("types_jsonschema.go")):
        if path.name.startswith(("zz_", "generated")) or path.name.endswith("_test.go"):
            continue
        lines = path.read_text().splitlines()
        comment, i = [], 0
        while i < len(lines):
            line = lines[i]
            if line.startswith("//"):
                comment.append(line)
            elif match := re.match(r"type (\w+) struct\s*\{", line):
                fields = []
                if not line.rstrip().endswith("}"):
                    i = parse_struct(lines, i + 1, fields)
                types.setdefault(match[1], ("\n".join(comment), fields))
                comment = []
            elif match := re.match(r"type (\w+) (=\s*)?([\w.\[\]*]+)\s*$", line):
                types.setdefault(match[1], ("\n".join(comment), match[3]))
                comment = []
            elif line.strip() and not line.startswith("//"):
                comment = []
            i += 1
    return types


def parse_struct(lines, i, fields):
    comment = []
    while lines[i] != "}":
        text = lines[i].strip()
        if text.startswith("//"):
            comment.append(text)
        elif not text:
            comment = []
        elif match := re.match(r"(?:(\w+)\s+)?([\w.\[\]*]+)\s+`(.*)`", text):
            tags = dict(re.findall(r'(\w+):"([^"]*)"', match[3]))
            json_name, _, options = tags.get("json", "").partition(",")
            number = tags.get("protobuf", ",0").split(",")[1]
            if json_name != "-":
                inline = "inline" in options or (not match[1] and not json_name)
                fields.append(Field(json_name, match[2], int(number or 0), "\n".join(comment), tags, inline))
            comment = []
        i += 1
    return i


class Tables:
    def __init__(self, packages):
        self.packages = packages
        self.written = {}  # qualified name -> lines

    def resolve(self, package, go_type):
        """(form, shape, qualified message)"""
        go_type = go_type.lstrip("*")
        if go_type == "[]byte":
            return "kBytes", "kOne", None
        if go_type.startswith("[]"):
            form, shape, message = self.resolve(package, go_type[2:])
            return form, "kList" if shape == "kOne" else shape, message
        if go_type.startswith("map["):
            form, shape, message = self.resolve(package, go_type[go_type.index("]") + 1:])
            # A map of lists has a message around its list in protobuf and none in JSON.
            return (form, "kMap", message) if shape == "kOne" else ("kRaw", "kMap", None)
        if go_type in BASIC:
            return BASIC[go_type], "kOne", None
        if "." in go_type:
            prefix, name = go_type.split(".")
            package = {"metav1": "meta/v1", "v1": "core/v1", "corev1": "core/v1", "apiv1": "core/v1", "types": "types",
                       "authenticationv1": "authentication/v1", "rbacv1": "rbac/v1", "intstr": "intstr", "resource": "resource",
                       "runtime": "runtime"}.get(prefix, prefix)
        else:
            name = go_type
        qualified = f"{package}.{name}"
        if qualified in SPECIAL:
            return SPECIAL[qualified], "kOne", None
        if package == "types":
            return "kString", "kOne", None
        if package == "runtime":
            return "kRaw", "kOne", None
        _, content = self.packages[package][name]
        if isinstance(content, str):
            return self.resolve(package, content)
        self.write(package, name)
        return "kMessage", "kOne", qualified

    def merge_of(self, field, shape, message):
        comment = field.comment
        if match := re.search(r"\+listType=(\w+)", comment):
            keys = re.findall(r"\+listMapKey=(\w+)", comment)
            return {"atomic": ("kAtomic", ""), "set": ("kSet", ""), "map": ("kByKey", ",".join(keys))}[match[1]]
        if re.search(r"\+(mapType|structType)=atomic", comment):
            return "kAtomic", ""
        if re.search(r"\+(mapType|structType)=granular", comment):
            return "kGranular", ""
        if shape != "kList":
            return "kGranular", ""
        if "merge" in field.tags.get("patchStrategy", ""):
            key = field.tags.get("patchMergeKey")
            return ("kByKey", key) if key else ("kSet", "")
        return "kAtomic", ""

    def write(self, package, name):
        qualified = f"{package}.{name}"
        if qualified in self.written:
            return
        self.written[qualified] = None
        comment, fields = self.packages[package][name]
        lines = []
        for field in fields:
            if field.go_type.endswith("TypeMeta") and field.inline:
                continue
            form, shape, message = self.resolve(package, field.go_type)
            merge, keys = self.merge_of(field, shape, message)
            optional = "omitempty" in field.tags.get("json", "")
            parts = [f'"{"" if field.inline else field.name}"', str(field.number), f"Form::{form}",
                     f"Shape::{shape}", "&" + symbol(message) if message else "nullptr", f"Merge::{merge}",
                     f'"{keys}"']
            required = not optional and not field.inline
            pointer = field.go_type.startswith("*")
            if required or pointer:
                parts.append("true" if required else "false")
            if pointer:
                parts.append("true")
            lines.append("    {" + ", ".join(parts) + "},")
        assert len(lines) <= 64, f"{qualified}: the reader counts fields in 64 bits"
        atomic = bool(re.search(r"\+structType=atomic", comment))
        self.written[qualified] = (lines, atomic)


def symbol(qualified):
    package, name = qualified.split(".")
    return package.replace("/", "_") + "_" + name


def group_of(package):
    return GROUPS.get(package, package.split("/")[0] + ".k8s.io")


HEAD = """// Generated by tools/make_kube_types.py from Kubernetes' API modules {version}; do not edit.
// clang-format off
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--modules", required=True, type=pathlib.Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("src/kube/types"))
    options = parser.parse_args()
    packages = {}
    for package, (module, folder) in PACKAGES.items():
        packages[package] = parse_package(options.modules / "k8s.io" / f"{module}@{options.version}" / folder)
    tables = Tables(packages)
    for package, kinds in ROOTS.items():
        for kind in kinds:
            tables.write(package, kind)

    head = HEAD.format(version=options.version)
    declared = [head, "#pragma once\n", '#include "kube/types/type_info.h"\n',
                "namespace grapnel::kube::shapes {\n"]
    declared += [f"extern const TypeInfo {symbol(q)};" for q in sorted(tables.written)]
    declared += ["\n}  // namespace grapnel::kube::shapes\n"]
    (options.out / "shapes.h").write_text("\n".join(declared))

    for package in PACKAGES:
        own = {q: v for q, v in sorted(tables.written.items()) if q.startswith(package + ".")}
        out = [head, '#include "kube/types/shapes.h"\n', "namespace grapnel::kube::shapes {",
               "namespace {\n", "using Form = FieldInfo::Form;", "using Shape = FieldInfo::Shape;",
               "using Merge = FieldInfo::Merge;\n"]
        for qualified, (lines, _) in own.items():
            if lines:
                out += [f"constexpr FieldInfo k{symbol(qualified)}[] = {{", *lines, "};", ""]
        out += ["}  // namespace\n"]
        for qualified, (lines, atomic) in own.items():
            fields = f"k{symbol(qualified)}" if lines else "{}"
            out += [f'constinit const TypeInfo {symbol(qualified)}{{"{qualified}", {fields}, '
                    f'{"true" if atomic else "false"}}};']
        out += ["\n}  // namespace grapnel::kube::shapes\n"]
        (options.out / (package.split("/")[0] + "_types.cpp")).write_text("\n".join(out))

    out = [head, "#include <array>\n", '#include "kube/types/shapes.h"\n', "namespace grapnel::kube {", "namespace {\n",
           "struct Root {", "  std::string_view group;", "  std::string_view version;",
           "  std::string_view kind;", "  const TypeInfo* type;", "};",
           "constexpr auto kRoots = std::to_array<Root>({"]
    for package, kinds in ROOTS.items():
        for kind in kinds:
            out.append(f'    {{"{group_of(package)}", "{package.split("/")[1]}", "{kind}", '
                       f'&shapes::{symbol(package + "." + kind)}}},')
    out += ["});\n", "}  // namespace\n",
            "const TypeInfo* type_of_kind(std::string_view group, std::string_view version,",
            "                             std::string_view kind) {", "  for (const Root& root : kRoots) {",
            "    if (root.group == group && root.version == version && root.kind == kind) return root.type;",
            "  }", "  return nullptr;", "}\n", "}  // namespace grapnel::kube\n"]
    (options.out / "roots.cpp").write_text("\n".join(out))
    print(len(tables.written), "types")


if __name__ == "__main__":
    main()
