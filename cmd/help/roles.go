package help

// rolesIntro says how kubectl is told what a policy does, and who may write which.
const rolesIntro = `With the admission webhook, API servers ask meshctl about each policy that
somebody writes, dry runs included, and kubectl prints what it does:

  meshctl install --webhook
  kubectl apply -f policy.yaml
  Warning: productpage-v1 in cluster-1 may no longer call details

At most five warnings are printed, the worst first: calls that end, services
that open to callers whom no policy names, conflicts with older policies, what a
mesh cannot express, services that do not exist, with the nearest name. Nothing
is rejected for that. An answer that takes more than 200 ms has no warnings, and
while meshctl does not answer, writes go on without; "meshctl plan" says it all.

Roles limit who may write what, for people and pipelines to whom Kubernetes
gives the right to write policies at all:

  kind: Role         trafficPolicyScopes, accessPolicyScopes, virtualMeshScopes,
                     virtualDestinationScopes, wasmDeploymentScopes,
                     accessLogRecordScopes
  kind: RoleBinding  roleRef, and subjects of kind User, Group, ServiceAccount

  meshctl create role, meshctl create rolebinding   by questions or by flags
  meshctl describe role                             who may write what

Both count in the namespace of the management plane only: who may write in
another one gives no rights on the services of all clusters. An absent list
allows nothing, and "*" has to be written for any, with labels "*": "*". What a
policy selects by labels has to be allowed by labels, and what it names has to
be allowed by name. One scope has to allow all of an object. Of access policies,
scopes that list only identities go with those that list only destinations. Who
updates an object needs the right on it as it is stored and as it becomes.

Roles do nothing until you ask for it, as nobody could write without one:

  meshctl install --webhook --roles warn     what would be rejected is a warning
  meshctl install --webhook --roles enforce  what no Role allows is rejected
  meshctl why may ada create -f policy.yaml  whether Roles allow it, and why not

It is a flag and no field of the Settings: who may edit these could lift limits
of their own. While meshctl does not answer, enforced Roles reject writes; with
--webhook-failure-policy Ignore, all are let through. Never asked, and always
allowed, are members of the group system:masters, the controllers of Kubernetes
in kube-system, and the ServiceAccount of meshctl itself.

Roles, RoleBindings, ServiceDependencies and Settings have no scopes: Kubernetes
decides about them. Keep the right to write RoleBindings for administrators:
with it, everybody can give themselves any Role, and so nobody is locked out.
A Role says nothing about where a trafficShift or a mirror sends requests, and
nothing about policies that are written in registered clusters: these have no
author whom meshctl could know, and stay within their own namespace.

The certificate is in Secret meshctl-webhook, renewed after two months, and made
known to the API server. To use one of cert-manager, have it write that Secret,
for meshctl-webhook.NAMESPACE.svc, before you install; API servers are told to
trust its ca.crt. If serve runs outside of the cluster, give it --webhook-bind
and --webhook-url.`
