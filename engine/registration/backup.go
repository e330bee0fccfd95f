package registration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// BackupOptions configure TakeBackup.
type BackupOptions struct {
	// Config is the client configuration of the management cluster, with the permissions of an administrator, and Context what messages
	// call it; optional.
	Config  *rest.Config
	Context string
	// Namespace of the management plane; cluster.DefaultNamespace if empty.
	Namespace string
	// Secrets puts credentials and private keys into the Backup.
	Secrets bool
	// Keyless gives the Secret that has the certificate of a VirtualMesh's root without its key; nil if a Secret has no root. Without
	// Secrets, it takes the place of the Secret, so that the root stays trusted. Nil leaves roots out.
	Keyless func(*corev1.Secret) *corev1.Secret
	// Version is that of this meshctl.
	Version string
	// Now is the time that the Backup has.
	Now time.Time
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
}

// backing is one run of TakeBackup.
type backing struct {
	BackupOptions
	server *server
	out    *Backup
	// roots are the Secrets that VirtualMeshes name.
	roots map[types.NamespacedName]bool
}

// TakeBackup reads the state of a management plane: what users wrote there, with what is recorded of it, what was discovered, and what the
// management plane has in its own namespace. It writes nothing. What is edited meanwhile may be in it or not.
func TakeBackup(ctx context.Context, o BackupOptions) (*Backup, error) {
	orDefault(&o.Namespace, cluster.DefaultNamespace)
	b := &backing{BackupOptions: o, roots: map[types.NamespacedName]bool{}}
	var err error
	if b.server, err = newServer(managementSide, o.Context, o.Config, o.Timeout); err != nil {
		return nil, err
	}
	if err := b.server.probe(ctx); err != nil {
		return nil, err
	}
	plane, err := b.server.plane(ctx, o.Namespace)
	if err != nil {
		return nil, err
	}
	b.out = &Backup{
		Format: backupFormat, Version: backupVersion, Meshctl: o.Version, Taken: o.Now.UTC(), Server: b.server.config.Host, ClusterUID: b.server.uid,
		Namespace: o.Namespace, Plane: plane.ID,
	}
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(b.out.Objects, func(u *unstructured.Unstructured) bool { return u.GetNamespace() == o.Namespace }) {
		return nil, &NoPlaneError{Server: b.server.label, Namespace: o.Namespace}
	}
	if err := b.identify(); err != nil {
		return nil, err
	}
	slices.SortFunc(b.out.Objects, compareObjects)
	return b.out, nil
}

// NoPlaneError says that a namespace has no management plane.
type NoPlaneError struct{ Server, Namespace string }

func (e *NoPlaneError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *NoPlaneError) Advice() (what, hint string) {
	return fmt.Sprintf("%s: namespace %s has no management plane", e.Server, e.Namespace), "name another context or --namespace"
}

// compareObjects orders objects by kind, namespace and name.
func compareObjects(a, b *unstructured.Unstructured) int {
	return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// read reads everything. Policies come first: what is in force for a service and was edited meanwhile is the later version.
func (b *backing) read(ctx context.Context) error {
	kinds := snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write)
	slices.SortStableFunc(kinds, func(a, b snapshot.Kind) int {
		return int(a.Info().Access&snapshot.Write) - int(b.Info().Access&snapshot.Write)
	})
	for _, k := range kinds {
		if k.Info().Side != snapshot.ManagementSide {
			continue
		}
		err := b.list(ctx, kindResource(k), inOwnNamespace(k, b.Namespace), func(o *unstructured.Unstructured) error {
			b.addRoot(k, o)
			b.add(o)
			return nil
		})
		if err != nil {
			return err
		}
	}
	own := snapshot.Plane{Namespace: b.Namespace, ID: b.out.Plane}
	err := b.list(ctx, configMaps, b.Namespace, func(o *unstructured.Unstructured) error {
		if isMade(o, own) {
			b.add(o)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := b.readSecrets(ctx, own); err != nil {
		return err
	}
	return b.readNamespaces(ctx)
}

// inOwnNamespace is the namespace in which objects of a kind count; empty for all.
func inOwnNamespace(k snapshot.Kind, namespace string) string {
	if k == snapshot.KubernetesCluster || k.Info().Access&snapshot.Write != 0 {
		return namespace
	}
	return ""
}

// isMade reports whether meshctl made an object of the management plane's namespace for the management plane, and not for an agent there.
func isMade(o metav1.Object, own snapshot.Plane) bool {
	if o.GetName() == snapshot.RelayClientSecret || strings.HasPrefix(o.GetName(), snapshot.RelayOutputPrefix) {
		return false
	}
	return o.GetLabels()[cluster.ManagedByLabel] == cluster.ManagedBy || own.Owns(o.GetLabels()) ||
		slices.Contains([]string{cluster.PlaneName, snapshot.TrustRecord, snapshot.ChangesRecord}, o.GetName())
}

// usersSecrets are Secrets of the management plane's namespace that users may make instead of meshctl.
var usersSecrets = []string{
	snapshot.RelayRootSecret, snapshot.RelayServerSecret, snapshot.RelayClientRootSecret, snapshot.RelayTokenSecret,
}

// list reads all objects of a type, page by page. A type that the server does not have has no objects.
func (b *backing) list(ctx context.Context, r resource, namespace string, yield func(*unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := b.server.client(r, namespace).List(ctx, options)
		switch {
		case kube.IsAbsent(err):
			return nil
		case err != nil:
			return fmt.Errorf("%s: listing %s: %w", b.server.label, r.Resource, err)
		}
		for i := range list.Items {
			if list.Items[i].GetDeletionTimestamp() != nil {
				continue
			}
			if err := yield(&list.Items[i]); err != nil {
				return err
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// add puts an object into the Backup.
func (b *backing) add(o *unstructured.Unstructured) {
	o.SetResourceVersion("")
	b.out.Objects = append(b.out.Objects, o)
}

// addRoot notes the Secret with the root of a VirtualMesh.
func (b *backing) addRoot(k snapshot.Kind, o *unstructured.Unstructured) {
	if k != snapshot.VirtualMesh {
		return
	}
	if ref, ok := rootSecretOf(o); ok {
		b.roots[ref] = true
	}
}

// rootSecretOf names the Secret with the root of a VirtualMesh; false if that is generated, or a Vault's.
func rootSecretOf(vm *unstructured.Unstructured) (types.NamespacedName, bool) {
	secret, _, err := unstructured.NestedStringMap(vm.Object, "spec", "mtlsConfig", "shared", "rootCertificateAuthority", "secret")
	return types.NamespacedName{Namespace: secret["namespace"], Name: secret["name"]}, err == nil && secret["name"] != ""
}

// secretNameOf names the Secret with the credential of a KubernetesCluster, in the same namespace; empty if its agent speaks for it.
func secretNameOf(kc *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(kc.Object, "spec", "secretName")
	return name
}

// readSecrets reads the Secrets of the management plane, and those that VirtualMeshes name.
func (b *backing) readSecrets(ctx context.Context, own snapshot.Plane) error {
	err := b.list(ctx, secrets, b.Namespace, func(o *unstructured.Unstructured) error {
		kind, _, _ := unstructured.NestedString(o.Object, "type")
		name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		mine := isMade(o, own) || slices.Contains([]string{cluster.SecretType, snapshot.RelayRecordType, snapshot.RootSecretType}, kind) ||
			slices.Contains(usersSecrets, o.GetName())
		if !mine || b.roots[name] {
			return nil
		}
		return b.addSecret(o)
	})
	if err != nil {
		return err
	}
	for name := range b.roots {
		secret, err := b.server.get(ctx, secrets, name.Namespace, name.Name)
		if err != nil {
			return err
		}
		if secret != nil {
			if err := b.addSecret(secret); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSecret puts a Secret into the Backup, if Secrets were asked for, or else what of it is none.
func (b *backing) addSecret(o *unstructured.Unstructured) error {
	if b.Secrets {
		b.add(o)
		return nil
	}
	secret := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, secret); err != nil {
		return fmt.Errorf("%s: decoding: %w", describeObject(o), err)
	}
	var keyless *corev1.Secret
	if b.Keyless != nil {
		keyless = b.Keyless(secret)
	}
	if keyless == nil || keyless.Name != secret.Name {
		b.out.LeftOut = append(b.out.LeftOut, LeftOutSecret{Namespace: secret.Namespace, Name: secret.Name, Type: string(secret.Type)})
	}
	if keyless == nil {
		return nil
	}
	return b.addCore(keyless, secrets)
}

// addCore puts an object into the Backup that is none of the server.
func (b *backing) addCore(object any, r resource) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("%s: encoding: %w", r.kind, err)
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(r.GroupVersion().WithKind(r.kind))
	if !slices.ContainsFunc(b.out.Objects, func(other *unstructured.Unstructured) bool { return compareObjects(o, other) == 0 }) {
		b.add(o)
	}
	return nil
}

// readNamespaces reads the namespaces of what is in the Backup.
func (b *backing) readNamespaces(ctx context.Context) error {
	names := map[string]bool{b.Namespace: true}
	for _, o := range b.out.Objects {
		names[o.GetNamespace()] = true
	}
	delete(names, "")
	for name := range names {
		o, err := b.server.get(ctx, namespaces, "", name)
		if err != nil || o == nil {
			return err
		}
		delete(o.Object, "spec")
		delete(o.Object, "status")
		b.add(o)
	}
	return nil
}

// identify puts in the identity of a management plane that has stored none: it follows from the cluster, and that will be another.
func (b *backing) identify() error {
	for _, o := range b.out.Objects {
		if isIdentity(o, b.Namespace) {
			return nil
		}
	}
	return b.addCore(cluster.PlaneObject(b.Namespace, b.out.Plane), configMaps)
}

func isIdentity(o *unstructured.Unstructured, namespace string) bool {
	return o.GetKind() == configMaps.kind && o.GetNamespace() == namespace && o.GetName() == cluster.PlaneName
}
