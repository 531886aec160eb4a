package main

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	config "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The pod has no field that Kubernetes does not know, and puts the socket where the API server is told to look.
func TestThePodServesTheSocketOfTheConfiguration(t *testing.T) {
	var pod core.Pod
	read(t, "pod.yaml", &pod)
	var configuration config.EncryptionConfiguration
	read(t, "encryption-configuration.yaml", &configuration)
	socket := strings.TrimPrefix(configuration.Resources[0].Providers[0].KMS.Endpoint, "unix://")
	container := pod.Spec.Containers[0]
	mounted := slices.IndexFunc(container.VolumeMounts, func(mount core.VolumeMount) bool {
		return mount.MountPath == path.Dir(socket)
	})
	if mounted < 0 {
		t.Fatalf("the pod mounts no %s", path.Dir(socket))
	}
	volume := slices.IndexFunc(pod.Spec.Volumes, func(volume core.Volume) bool {
		return volume.Name == container.VolumeMounts[mounted].Name && volume.HostPath.Path == path.Dir(socket)
	})
	if volume < 0 {
		t.Fatalf("%s of the pod is not that of the machine", path.Dir(socket))
	}
	gateway, err := os.ReadFile("gateway.toml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(gateway), "socket = \""+socket+"\"") {
		t.Fatalf("gateway.toml does not name %s", socket)
	}
}
