package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// watchAgain is between two attempts to watch a kind.
const watchAgain = 300 * time.Millisecond

// Changed returns a channel that gets a value when objects of the kinds in a namespace may have changed; an empty one means all. It gets one
// at the beginning, and one each time that a watch begins anew. What comes while a value waits is one with it. It ends with ctx.
func (c *Client) Changed(ctx context.Context, namespace string, kinds ...schema.GroupVersionResource) <-chan struct{} {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	say := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, kind := range kinds {
		go func() {
			for ctx.Err() == nil {
				c.watch(ctx, namespace, kind, say)
				select {
				case <-ctx.Done():
				case <-time.After(watchAgain):
				}
			}
		}()
	}
	return changed
}

// watch calls say for each event, of which those of the objects that there are come first. It returns when the watch ends.
func (c *Client) watch(ctx context.Context, namespace string, kind schema.GroupVersionResource, say func()) {
	events, err := c.dynamic.Resource(kind).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return // the API server does not answer; the next one says so if it does
	}
	defer events.Stop()
	say() // what went away meanwhile is no event
	for range events.ResultChan() {
		say()
	}
}
