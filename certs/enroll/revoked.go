package enroll

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// Revoked calls tell for each cluster whose agent's certificates do not count any more, until ctx ends: they were revoked, or nothing is
// known of the agent any more. It may be called once more than needed when it begins.
func (s *Store) Revoked(ctx context.Context, tell func(cluster string)) {
	list := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "secrets", s.Namespace, fields.OneTermEqualSelector("type", string(RecordType)))
	informer := cache.NewSharedIndexInformer(list, &corev1.Secret{}, 0, cache.Indexers{})
	told := func(o any, since time.Time) {
		secret, cluster := recordOf(o)
		if at := revokedBefore(secret); cluster != "" && at.After(since) {
			tell(cluster)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { told(o, time.Time{}) },
		UpdateFunc: func(before, now any) {
			was, _ := recordOf(before)
			told(now, revokedBefore(was))
		},
		DeleteFunc: func(o any) {
			if gone, last := o.(cache.DeletedFinalStateUnknown); last {
				o = gone.Obj
			}
			if _, cluster := recordOf(o); cluster != "" {
				tell(cluster)
			}
		},
	})
	if err != nil { // only of an informer that has ended
		return
	}
	informer.RunWithContext(ctx)
}

// recordOf is the Secret with a Record, and the cluster that it is about; empty if it is none.
func recordOf(o any) (*corev1.Secret, string) {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return nil, ""
	}
	cluster, ok := strings.CutPrefix(secret.Name, recordPrefix)
	if !ok {
		return nil, ""
	}
	return secret, cluster
}

// revokedBefore is that of the Record in a Secret; one that cannot be read admits nobody, and says so to who asks for it.
func revokedBefore(secret *corev1.Secret) time.Time {
	var r Record
	if secret == nil || json.Unmarshal(secret.Data[recordKey], &r) != nil {
		return time.Time{}
	}
	return r.RevokedBefore
}
