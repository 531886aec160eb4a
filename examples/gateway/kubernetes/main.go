// Loads an EncryptionConfiguration with the API server's own code, and has it write a secret to storage and read it back.
//
//	go run . CONFIGURATION
package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: %s CONFIGURATION", os.Args[0]))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	configuration, err := encryptionconfig.LoadEncryptionConfig(ctx, os.Args[1], false, "polyclave-example")
	if err != nil {
		fail(err)
	}
	// What the API server asks for itself, under /healthz.
	asks, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		fail(err)
	}
	for _, check := range configuration.HealthChecks {
		if err := check.Check(asks); err != nil {
			fail(fmt.Errorf("%s: %w", check.Name(), err))
		}
	}
	secrets := configuration.Transformers[schema.GroupResource{Resource: "secrets"}]
	if secrets == nil {
		fail(fmt.Errorf("the configuration says nothing of secrets"))
	}
	place := value.DefaultContext("/registry/secrets/default/example")
	secret := []byte("correct horse battery staple")
	stored, err := secrets.TransformToStorage(ctx, secret, place)
	if err != nil {
		fail(err)
	}
	if bytes.Contains(stored, secret) || !bytes.HasPrefix(stored, []byte("k8s:enc:kms:v2:")) {
		fail(fmt.Errorf("it was not encrypted by a KMS of version 2"))
	}
	read, stale, err := secrets.TransformFromStorage(ctx, stored, place)
	if err != nil {
		fail(err)
	}
	if stale || !bytes.Equal(read, secret) {
		fail(fmt.Errorf("another secret was read, or one to be written again"))
	}
	fmt.Println("kubernetes: the secret came back")
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
