package proof

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/fstest"
)

// drawnWorld is two clusters that a VirtualMesh joins, with policies and with what users wrote beside them.
type drawnWorld struct {
	seed   uint64
	random *rand.Rand
	// management are the manifests of the management plane.
	management []string
	clusters   []*drawnCluster
}

// drawnCluster has objects as YAML.
type drawnCluster struct {
	name, mesh string
	// objects are those of Kubernetes, and byHand those of Istio that users write.
	objects, byHand []string
	pods            []worldProxy
	services        int
	// targetPort is that of all services: a number, or a name that pods may give to another one.
	targetPort string
	// port is that of all services.
	port int
	// filters: objects that change the proxies' filters were drawn.
	filters bool
}

// worldProxy is a pod with a proxy, as the role worlds takes it.
type worldProxy struct {
	Name, Namespace, Address, Account string
	Labels                            map[string]string
	Gateway                           bool

	// plain: it has no proxy. A machine is no pod. The application listens on port.
	plain, machine bool
	port           int
}

func drawWorld(seed uint64) *drawnWorld {
	w := &drawnWorld{seed: seed, random: rand.New(rand.NewPCG(seed, 0))}
	for i, name := range []string{"east", "west"} {
		c := &drawnCluster{name: name}
		w.clusters = append(w.clusters, c)
		w.drawCluster(c, i+1)
	}
	w.drawPolicies()
	return w
}

// one is one of some texts.
func (w *drawnWorld) one(list ...string) string { return list[w.random.IntN(len(list))] }

// String is what is not the same in all worlds.
func (w *drawnWorld) String() string {
	text := fmt.Sprintf("world %d (MESHCTL_TEST_SEED=%[1]d begins with it)\n%s", w.seed, document(w.management))
	for _, c := range w.clusters {
		text += "\n# " + c.name + "\n" + c.mesh + string(document(c.byHand))
		for _, o := range c.objects {
			if strings.Contains(o, "\nkind: Service\n") && (strings.Contains(o, "exportTo") || strings.Contains(o, "None")) {
				text += "\n---\n" + o
			}
		}
	}
	return text
}

// in reports true in some of a hundred cases.
func (w *drawnWorld) in(percent int) bool { return w.random.IntN(100) < percent }

// files is the world as a folder.
func (w *drawnWorld) files() fstest.MapFS {
	out := fstest.MapFS{"management/all.yaml": {Data: document(w.management)}}
	for _, c := range w.clusters {
		out[c.name+"/all.yaml"] = &fstest.MapFile{Data: append(document(c.objects), document(c.byHand)...)}
	}
	return out
}

func document(objects []string) []byte { return []byte("\n---\n" + strings.Join(objects, "\n---\n")) }

func (c *drawnCluster) add(format string, values ...any) {
	c.objects = append(c.objects, fmt.Sprintf(strings.TrimSpace(format), values...))
}

func (w *drawnWorld) drawCluster(c *drawnCluster, number int) {
	for _, name := range []string{"istio-system", "shop", "front"} {
		c.add("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {kubernetes.io/metadata.name: %[1]s}}", name)
	}
	c.mesh = w.drawMeshConfig()
	c.add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\ndata:\n  mesh: |\n    %s", strings.ReplaceAll(strings.TrimSpace(c.mesh), "\n", "\n    "))
	c.add(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system, labels: {app: istiod, istio.io/rev: default}}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod, istio.io/rev: default}}
    spec: {serviceAccountName: istiod, containers: [{name: discovery, image: "docker.io/istio/pilot:1.31.1", env: [{name: PILOT_ENABLE_ALPN_FILTER, value: "false"}]}]}`)
	gateway := w.addPod(c, number, "StatefulSet", "eastwest", "istio-system", "eastwest", map[string]string{"istio": "eastwestgateway"}, true)
	c.add("apiVersion: v1\nkind: Service\nmetadata: {name: eastwest, namespace: istio-system, labels: {istio: eastwestgateway}}\nspec:\n  type: LoadBalancer\n  clusterIP: 10.%d.255.1\n  selector: {istio: eastwestgateway}\n  ports: [{name: tls, port: 15443, targetPort: 15443, protocol: TCP}]\nstatus: {loadBalancer: {ingress: [{ip: 172.18.0.%d}]}}", number, 100+number)
	w.addSlice(c, "eastwest", "istio-system", "{name: tls, port: 15443, protocol: TCP}", []worldProxy{gateway})
	w.drawServices(c, number)
	for range w.random.IntN(4) {
		c.byHand = append(c.byHand, w.drawByHand(c)...)
	}
}

// drawServices draws the services of namespace shop, and a caller of each namespace.
func (w *drawnWorld) drawServices(c *drawnCluster, number int) {
	c.port, c.targetPort = 9080, "8080"
	if w.in(8) {
		c.port = 8080
	}
	if w.in(15) {
		c.targetPort = "web"
	}
	kinds := []string{"Deployment", "StatefulSet", "Rollout", ""}
	var cart []worldProxy
	for _, version := range []string{"v1", "v2"} {
		cart = append(cart, w.addPod(c, number, w.one(kinds...), "cart-"+version, "shop", "cart", map[string]string{"app": "cart", "version": version, "part-of": "shop"}, false))
	}
	ledger := []worldProxy{w.addPod(c, number, w.one(kinds...), "ledger", "shop", w.one("ledger", "cart"), map[string]string{"app": "ledger", "part-of": "shop"}, false)}
	if w.in(15) {
		w.addMachine(c, number)
	}
	w.addPod(c, number, w.one(kinds...), "web", "front", "web", map[string]string{"app": "web"}, false)
	w.addPod(c, number, w.one(kinds...), "worker", "shop", "worker", map[string]string{"app": "worker"}, false)

	w.addService(c, number, "cart", "{app: cart}", cart)
	w.addService(c, number, "ledger", "{app: ledger}", ledger)
	if w.in(15) {
		w.addService(c, number, "everything", "{part-of: shop}", append(cart, ledger...))
	}
	if w.in(15) {
		w.addService(c, number, "cart-v1", "{app: cart, version: v1}", cart[:1])
	}
}

func (w *drawnWorld) addService(c *drawnCluster, number int, name, selector string, pods []worldProxy) {
	c.services++
	address := fmt.Sprintf("10.%d.255.%d", number, 10+c.services)
	if w.in(map[int]int{8080: 60, 9080: 2}[c.port]) {
		address = "None" // so that nothing translates ports
	}
	annotations := ""
	if w.in(12) {
		annotations = ", annotations: {networking.istio.io/exportTo: \"" + w.one(".", "*", "front", "shop,front", "~") + "\"}"
	}
	ports, second := fmt.Sprintf("{name: http, port: %d, targetPort: %s, protocol: TCP}", c.port, c.targetPort), ""
	if w.in(25) {
		second = w.one("http-other", "tcp-other", "grpc-other", "other")
		if address == "None" && second == "tcp-other" {
			second = "http-other" // for connections, proxies have a listener for each pod of it, which is not evaluated
		}
		ports += fmt.Sprintf(", {name: %s, port: %d, targetPort: %d, protocol: TCP}", second, w.secondPort(address), secondTarget)
		second = fmt.Sprintf(", {name: %s, port: %d, protocol: TCP}", second, secondTarget)
	}
	c.add("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: shop%s}\nspec:\n  clusterIP: %s\n  selector: %s\n  ports: [%s]", name, annotations, address, selector, ports)
	for _, port := range []int{8080, 8081} {
		w.addSlice(c, name, "shop", fmt.Sprintf("{name: http, port: %d, protocol: TCP}%s", port, second), slices.DeleteFunc(slices.Clone(pods), func(p worldProxy) bool { return p.port != port }))
	}
}

// secondTarget is the port of pods to which the second port of a service leads.
const secondTarget = 8090

// secondPort is the second port of a service with an address; without one, nothing translates ports, or seldom.
func (w *drawnWorld) secondPort(address string) int {
	if address == "None" || w.in(20) {
		return secondTarget
	}
	return 9090
}

func (w *drawnWorld) addSlice(c *drawnCluster, service, namespace, ports string, pods []worldProxy) {
	if len(pods) == 0 {
		return
	}
	text := fmt.Sprintf("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: %s-%d, namespace: %s, labels: {kubernetes.io/service-name: %[1]s}}\naddressType: IPv4\nports: [%[4]s]\nendpoints:", service, pods[0].port, namespace, ports)
	for _, p := range pods {
		text += fmt.Sprintf("\n- {addresses: [%s], conditions: {ready: true}, targetRef: {kind: Pod, namespace: %s, name: %s}}", p.Address, p.Namespace, p.Name)
	}
	c.add("%s", text)
}

// addPod adds a pod with a proxy, and what it belongs to: nothing if kind is empty.
func (w *drawnWorld) addPod(c *drawnCluster, number int, kind, name, namespace, account string, labels map[string]string, gateway bool) worldProxy {
	p := worldProxy{
		Name: name + "-0", Namespace: namespace, Account: account, Gateway: gateway, Labels: labels,
		Address: fmt.Sprintf("10.%d.0.%d", number, 1+len(c.pods)), port: 8080,
	}
	p.plain = namespace == "shop" && name != "worker" && w.in(6)
	if c.targetPort == "web" && w.in(40) {
		p.port = 8081
	}
	c.pods = append(c.pods, p)
	var texts []string
	for key, value := range labels {
		texts = append(texts, key+": "+value)
	}
	own := "{" + strings.Join(texts, ", ") + "}"
	container, owner := "{name: istio-proxy, image: \"docker.io/istio/proxyv2:1.31.1\"}", ""
	if !gateway {
		app := fmt.Sprintf("{name: app, image: \"example.com/app:v1\", ports: [{name: web, containerPort: %d, protocol: TCP}]}", p.port)
		container = app + ", " + container
		if p.plain {
			container = app
		}
	}
	switch kind {
	case "Deployment":
		c.add("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s, namespace: %s, uid: %[1]s-%[2]s}\nspec:\n  selector: {matchLabels: %s}\n  template:\n    metadata: {labels: %[3]s}\n    spec: {serviceAccountName: %s, containers: [%s]}", name, namespace, own, account, container)
		c.add("apiVersion: apps/v1\nkind: ReplicaSet\nmetadata:\n  name: %s-1\n  namespace: %s\n  uid: %[1]s-%[2]s-1\n  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: %[1]s, uid: %[1]s-%[2]s, controller: true}]", name, namespace)
		owner = fmt.Sprintf("\n  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: %s-1, uid: %[1]s-%s-1, controller: true}]", name, namespace)
	case "StatefulSet":
		c.add("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: %s, namespace: %s, uid: %[1]s-%[2]s}\nspec:\n  selector: {matchLabels: %s}\n  template:\n    metadata: {labels: %[3]s}\n    spec: {serviceAccountName: %s, containers: [%s]}", name, namespace, own, account, container)
		owner = fmt.Sprintf("\n  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: %s, uid: %[1]s-%s, controller: true}]", name, namespace)
	case "Rollout":
		owner = fmt.Sprintf("\n  ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: %s, uid: %[1]s-%s, controller: true}]", name, namespace)
	}
	if !p.plain { // as injection does
		labels["security.istio.io/tlsMode"] = "istio"
		own = strings.TrimSuffix(own, "}") + ", security.istio.io/tlsMode: istio}"
	}
	c.add("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: %s\n  labels: %s\n  annotations: {istio.io/rev: default}%s\nspec: {serviceAccountName: %s, containers: [%s]}\nstatus: {phase: Running, podIP: %s, podIPs: [{ip: %[7]s}], conditions: [{type: Ready, status: \"True\"}]}",
		p.Name, namespace, own, owner, account, container, p.Address)
	return p
}
