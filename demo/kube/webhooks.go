package kube

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WaitWebhooks waits until istiod has set its CA and the failure policy Fail in
// its webhook configurations.
func (c *Client) WaitWebhooks(ctx context.Context) error {
	what := fmt.Sprintf("cluster %s: waiting for istiod's webhooks", c.name)
	return Until(ctx, what, func(ctx context.Context) error {
		for _, kind := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
			configs, err := c.List(ctx, Webhooks(kind), "")
			if err != nil {
				return err
			}
			if len(configs) == 0 {
				return fmt.Errorf("no %s", kind)
			}
			for _, config := range configs {
				if err := webhooksReady(&config); err != nil {
					return fmt.Errorf("%s: %w", config.GetName(), err)
				}
			}
		}
		return nil
	})
}

func webhooksReady(config *unstructured.Unstructured) error {
	webhooks, _, err := unstructured.NestedSlice(config.Object, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		if err := webhookReady(webhook); err != nil {
			return err
		}
	}
	return nil
}

func webhookReady(webhook any) error {
	config, ok := webhook.(map[string]any)
	if !ok {
		return errors.New("a webhook is not an object")
	}
	if ca, _, _ := unstructured.NestedString(config, "clientConfig", "caBundle"); ca == "" {
		return errors.New("it does not have a CA yet")
	}
	if config["failurePolicy"] != "Fail" {
		return errors.New("its failurePolicy is not Fail yet")
	}
	return nil
}
