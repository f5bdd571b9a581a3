package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	resource "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const cdiDir = "/var/run/cdi"

// A GPU driver of DRA without GPUs, named as the real one: a container has a variable DRA_GPU_<n> for each of its gpu-<n>,
// with the PCI address.
type gpuDriver struct {
	name string
	gpus map[string]map[string]string // device → attribute → text
}

func (d *gpuDriver) specOf(uid types.UID) string {
	return filepath.Join(cdiDir, fmt.Sprintf("k8s.%s-claim_%s.json", d.name, uid))
}

func (d *gpuDriver) prepare(claim *resource.ResourceClaim) (result kubeletplugin.PrepareResult) {
	devices, seen := []map[string]any{}, map[string]bool{}
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver != d.name {
			continue
		}
		device := string(claim.UID) + "-" + r.Device
		result.Devices = append(result.Devices, kubeletplugin.Device{Requests: []string{r.Request}, PoolName: r.Pool,
			DeviceName: r.Device, CDIDeviceIDs: []string{"k8s." + d.name + "/claim=" + device}})
		if !seen[device] {
			variable := "DRA_GPU_" + strings.TrimPrefix(r.Device, "gpu-") + "=" + d.gpus[r.Device]["resource.kubernetes.io/pciBusID"]
			devices = append(devices, map[string]any{"name": device, "containerEdits": map[string]any{"env": []string{variable}}})
			seen[device] = true
		}
	}
	text, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": "k8s." + d.name + "/claim", "devices": devices})
	if err == nil {
		err = os.WriteFile(d.specOf(claim.UID)+".tmp", text, 0o644) // no reader takes it for a spec
	}
	if err == nil {
		err = os.Rename(d.specOf(claim.UID)+".tmp", d.specOf(claim.UID))
	}
	result.Err = err
	return result
}

func (d *gpuDriver) PrepareResourceClaims(_ context.Context, claims []*resource.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	answer := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		answer[claim.UID] = d.prepare(claim)
	}
	return answer, nil
}

func (d *gpuDriver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	answer := map[types.UID]error{}
	for _, claim := range claims {
		answer[claim.UID] = nil
		if err := os.Remove(d.specOf(claim.UID)); !errors.Is(err, os.ErrNotExist) {
			answer[claim.UID] = err
		}
	}
	return answer, nil
}

func (d *gpuDriver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (d *gpuDriver) HandleError(_ context.Context, err error, words string) {
	fmt.Fprintln(os.Stderr, words, err)
}

func (d *gpuDriver) devices() []resource.Device {
	var found []resource.Device
	for name, attributes := range d.gpus {
		device := resource.Device{Name: name, Attributes: map[resource.QualifiedName]resource.DeviceAttribute{}}
		for key, text := range attributes {
			device.Attributes[resource.QualifiedName(key)] = resource.DeviceAttribute{StringValue: &text}
		}
		found = append(found, device)
	}
	return found
}

// Serves until SIGTERM; its slices stay, as those of real drivers do.
func (d *gpuDriver) serve(kubeconfig, node string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, folder := range []string{cdiDir, filepath.Join(kubeletplugin.KubeletPluginsDir, d.name)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(d.name), kubeletplugin.NodeName(node), kubeletplugin.KubeClient(client))
	if err != nil {
		return err
	}
	defer helper.Stop()
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: d.devices()}}}
	if err := helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// gpu-driver KUBECONFIG NODE FILE: the file is a map of devices to their attributes.
func serveGPUs(args []string) error {
	d := &gpuDriver{name: "gpu.nvidia.com"}
	if len(args) != 3 {
		return errors.New("usage: gpu-driver KUBECONFIG NODE FILE")
	}
	text, err := os.ReadFile(args[2])
	if err == nil {
		err = json.Unmarshal(text, &d.gpus)
	}
	if err != nil {
		return err
	}
	return d.serve(args[0], args[1])
}
