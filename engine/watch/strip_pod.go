package watch

import (
	corev1 "k8s.io/api/core/v1"
)

func stripPod(o *corev1.Pod) bool {
	*o = corev1.Pod{
		ObjectMeta: aged(o.ObjectMeta),
		Spec:       podSpec(o.Spec),
		Status:     corev1.PodStatus{Phase: o.Status.Phase, PodIP: o.Status.PodIP, PodIPs: o.Status.PodIPs},
	}
	return true
}

// template keeps of a pod template what discovery reads.
func template(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: essential(t.ObjectMeta), Spec: podSpec(t.Spec)}
}

func podSpec(s corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: s.NodeName, ServiceAccountName: s.ServiceAccountName,
		DeprecatedServiceAccount: s.DeprecatedServiceAccount, HostNetwork: s.HostNetwork,
		Containers: containers(s.Containers), InitContainers: containers(s.InitContainers), SecurityContext: ofPod(s.SecurityContext),
	}
}

// ofPod keeps as whom containers run that do not say it.
func ofPod(s *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if s == nil || s.RunAsUser == nil && s.RunAsGroup == nil {
		return nil
	}
	return &corev1.PodSecurityContext{RunAsUser: s.RunAsUser, RunAsGroup: s.RunAsGroup}
}

// ofContainer keeps as whom a container runs.
func ofContainer(s *corev1.SecurityContext) *corev1.SecurityContext {
	if s == nil || s.RunAsUser == nil && s.RunAsGroup == nil {
		return nil
	}
	return &corev1.SecurityContext{RunAsUser: s.RunAsUser, RunAsGroup: s.RunAsGroup}
}

// containers keeps names, images, what tells a sidecar from an init container, as whom
// they run, and what discovery reads. Other arguments and environment variables are not even
// kept in memory: they may hold passwords.
func containers(all []corev1.Container) []corev1.Container {
	kept := make([]corev1.Container, len(all))
	for i, c := range all {
		kept[i] = corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy, Args: detectors.ReadArgs(&all[i]), SecurityContext: ofContainer(c.SecurityContext)}
		for _, e := range c.Env {
			if !detectors.ReadEnv(e.Name) {
				continue
			}
			variable := corev1.EnvVar{Name: e.Name, Value: e.Value}
			if e.ValueFrom != nil {
				variable.ValueFrom = &corev1.EnvVarSource{} // elsewhere, it does not matter where
			}
			kept[i].Env = append(kept[i].Env, variable)
		}
	}
	return kept
}
