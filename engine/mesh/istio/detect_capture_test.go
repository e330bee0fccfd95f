package istio

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

func podWith(annotations map[string]string, args ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Image: "a"}, {Name: proxyName, Image: "proxyv2"}},
	}}
	if len(args) > 0 {
		pod.Spec.InitContainers = []corev1.Container{{Name: "istio-validation", Image: "proxyv2", Args: args}}
	}
	return pod
}

func TestInboundPast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"usual":                     {podWith(nil), ""},
		"excluded":                  {podWith(map[string]string{excludeInbound.annotation: "9090, 8080"}), discoveryv1.PastProxyExcluded},
		"another":                   {podWith(map[string]string{excludeInbound.annotation: "18080"}), ""},
		"included":                  {podWith(map[string]string{includeInbound.annotation: "8080"}), ""},
		"not included":              {podWith(map[string]string{includeInbound.annotation: "8443"}), discoveryv1.PastProxyExcluded},
		"none included":             {podWith(map[string]string{includeInbound.annotation: ""}), discoveryv1.PastProxyExcluded},
		"included and excluded":     {podWith(map[string]string{includeInbound.annotation: "8080", excludeInbound.annotation: "8080"}), ""},
		"not intercepted":           {podWith(map[string]string{interceptionKey: noInterception}), discoveryv1.PastProxyUncaptured},
		"intercepted otherwise":     {podWith(map[string]string{interceptionKey: "TPROXY"}), ""},
		"by the injector":           {podWith(nil, rulesCommand, "-b", "*", "-d", "15090,15021,8080"), discoveryv1.PastProxyExcluded},
		"not by the injector":       {podWith(map[string]string{excludeInbound.annotation: "8080"}, rulesCommand, "-b", "*", "-d", "15090,15021"), ""},
		"by another init container": {podWith(nil, "migrate", "-d", "8080"), ""},
	} {
		assert.Equal(t, c.want, inboundPast(c.pod, 8080), name)
		for i := range c.pod.Spec.InitContainers { // what is read of a cluster is stripped
			c.pod.Spec.InitContainers[i].Args = captureArgs(&c.pod.Spec.InitContainers[i])
		}
		assert.Equal(t, c.want, inboundPast(c.pod, 8080), name)
	}
	gateway := podWith(map[string]string{excludeInbound.annotation: "8080"})
	gateway.Spec.Containers = gateway.Spec.Containers[1:]
	assert.Empty(t, inboundPast(gateway, 8080))
	assert.Nil(t, outboundCapture(gateway))
}

func TestOutboundCapture(t *testing.T) {
	t.Parallel()
	unclear := &discoveryv1.Capture{Unclear: true}
	for name, c := range map[string]struct {
		annotations map[string]string
		args        []string
		want        *discoveryv1.Capture
	}{
		"usual":                  {nil, nil, nil},
		"what has no effect":     {map[string]string{includeOutbound.annotation: "80", includeRanges.annotation: "*"}, nil, nil},
		"ports":                  {map[string]string{excludeOutbound.annotation: "3306,80,80"}, nil, &discoveryv1.Capture{ExcludePorts: []uint32{80, 3306}}},
		"ranges":                 {map[string]string{excludeRanges.annotation: "192.0.2.0/24, 2001:db8::/32"}, nil, &discoveryv1.Capture{ExcludeRanges: []string{"192.0.2.0/24", "2001:db8::/32"}}},
		"an address":             {map[string]string{excludeRanges.annotation: "192.0.2.1"}, nil, &discoveryv1.Capture{ExcludeRanges: []string{"192.0.2.1/32"}}},
		"nothing":                {map[string]string{includeRanges.annotation: ""}, nil, &discoveryv1.Capture{OnlyIncluded: true}},
		"some":                   {map[string]string{includeRanges.annotation: "10.96.0.0/12", includeOutbound.annotation: "443"}, nil, &discoveryv1.Capture{OnlyIncluded: true, IncludePorts: []uint32{443}, IncludeRanges: []string{"10.96.0.0/12"}}},
		"no port":                {map[string]string{excludeOutbound.annotation: "http"}, nil, unclear},
		"too large a port":       {map[string]string{excludeOutbound.annotation: "65536"}, nil, unclear},
		"no range":               {map[string]string{includeRanges.annotation: "10.96.0.0/33"}, nil, unclear},
		"too many":               {map[string]string{excludeRanges.annotation: strings.TrimSuffix(strings.Repeat("192.0.2.1,", 1)+manyRanges(), ",")}, nil, unclear},
		"none":                   {map[string]string{interceptionKey: noInterception}, nil, &discoveryv1.Capture{None: true}},
		"by the injector":        {nil, []string{rulesCommand, "-m", "REDIRECT", "-i", "*", "-x", "192.0.2.0/24", "-o", "25"}, &discoveryv1.Capture{ExcludePorts: []uint32{25}, ExcludeRanges: []string{"192.0.2.0/24"}}},
		"the injector overrides": {map[string]string{excludeOutbound.annotation: "25"}, []string{rulesCommand, "-i", "*", "-x", ""}, nil},
	} {
		assert.Equal(t, c.want, outboundCapture(podWith(c.annotations, c.args...)), name)
	}
}

func manyRanges() string {
	var b strings.Builder
	for i := range mostRules {
		b.WriteString("198.51.100." + string(rune('0'+i%10)) + string(rune('0'+i/10)) + ",")
	}
	return b.String()
}

func TestAsProxy(t *testing.T) {
	t.Parallel()
	as := func(user, group int64) *corev1.SecurityContext {
		out := &corev1.SecurityContext{}
		if user >= 0 {
			out.RunAsUser = &user
		}
		if group >= 0 {
			out.RunAsGroup = &group
		}
		return out
	}
	always := corev1.ContainerRestartPolicyAlways
	app := func(s *corev1.SecurityContext) corev1.Container {
		return corev1.Container{Name: "app", SecurityContext: s}
	}
	proxy := func(s *corev1.SecurityContext) corev1.Container {
		return corev1.Container{Name: proxyName, Image: "proxyv2", SecurityContext: s}
	}
	other := corev1.Container{Name: "init", RestartPolicy: &always, SecurityContext: as(5, -1)}
	native := proxy(nil)
	native.RestartPolicy = &always
	for name, c := range map[string]struct {
		pod  corev1.PodSpec
		want string
	}{
		"unsaid":             {corev1.PodSpec{Containers: []corev1.Container{app(nil), proxy(nil)}}, ""},
		"another":            {corev1.PodSpec{Containers: []corev1.Container{app(as(1000, 1000)), proxy(as(1337, 1337))}}, ""},
		"user":               {corev1.PodSpec{Containers: []corev1.Container{app(as(1337, -1)), proxy(nil)}}, discoveryv1.AsProxyAll},
		"group":              {corev1.PodSpec{Containers: []corev1.Container{app(as(1, 1337)), proxy(nil)}}, discoveryv1.AsProxyAll},
		"root":               {corev1.PodSpec{Containers: []corev1.Container{app(as(0, 0)), proxy(as(0, 0))}}, ""},
		"its own user":       {corev1.PodSpec{Containers: []corev1.Container{app(as(7, -1)), proxy(as(7, 8))}}, discoveryv1.AsProxyAll},
		"no longer usual":    {corev1.PodSpec{Containers: []corev1.Container{app(as(1337, 1337)), proxy(as(7, 8))}}, ""},
		"some":               {corev1.PodSpec{Containers: []corev1.Container{app(as(1337, -1)), app(nil), proxy(nil)}}, discoveryv1.AsProxySome},
		"init container":     {corev1.PodSpec{InitContainers: []corev1.Container{app(as(1337, -1))}, Containers: []corev1.Container{app(nil), proxy(nil)}}, ""},
		"init that stays":    {corev1.PodSpec{InitContainers: []corev1.Container{native, other}, Containers: []corev1.Container{app(as(1337, -1))}}, discoveryv1.AsProxySome},
		"native sidecar":     {corev1.PodSpec{InitContainers: []corev1.Container{native}, Containers: []corev1.Container{app(as(1337, -1))}}, discoveryv1.AsProxyAll},
		"by the pod":         {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: as(1337, -1).RunAsUser}, Containers: []corev1.Container{app(nil), proxy(nil)}}, discoveryv1.AsProxyAll},
		"but not in its own": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: as(1337, -1).RunAsUser}, Containers: []corev1.Container{app(as(1, -1)), proxy(nil)}}, ""},
	} {
		assert.Equal(t, c.want, asProxy(&c.pod), name)
	}
}
