// What the API server of one Kubernetes version says of objects: decoded strictly, given their defaults, and held
// against its rules for creation, without a server.
//
//	rules FILE…
//
// Each complaint is a line, "FILE: Kind namespace/name: words"; kinds that Kubernetes itself does not have are named as
// such. An object without a namespace is in "default", as for kubectl.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
)

var strategies = map[string]rest.RESTCreateStrategy{
	"ClusterRole":        clusterrole.Strategy,
	"ClusterRoleBinding": clusterrolebinding.Strategy,
	"ConfigMap":          configmap.Strategy,
	"CronJob":            cronjob.Strategy,
	"DaemonSet":          daemonset.Strategy,
	"Deployment":         deployment.Strategy,
	"Job":                job.Strategy,
	"Namespace":          namespace.Strategy,
	"Pod":                pod.Strategy,
	"Role":               role.Strategy,
	"RoleBinding":        rolebinding.Strategy,
	"Service":            service.Strategy,
	"ServiceAccount":     serviceaccount.Strategy,
}

var decoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDecoder()

func check(text []byte) (name string, err error) {
	kind := schema.GroupVersionKind{}
	unknown := map[string]any{}
	if err := yaml.Unmarshal(text, &unknown); err != nil {
		return "", err
	}
	object, _, err := decoder.Decode(text, &kind, nil)
	if err != nil {
		if runtime.IsNotRegisteredError(err) {
			return fmt.Sprint(unknown["kind"]), errors.New("not a kind of Kubernetes")
		}
		return fmt.Sprint(unknown["kind"]), err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%v %s/%s", unknown["kind"], accessor.GetNamespace(), accessor.GetName())
	strategy := strategies[fmt.Sprint(unknown["kind"])]
	if strategy == nil {
		return name, errors.New("a kind that rules.go does not list")
	}
	if strategy.NamespaceScoped() && accessor.GetNamespace() == "" {
		accessor.SetNamespace("default")
	}
	if service, ok := object.(*core.Service); ok && service.Spec.ClusterIP != "" { // the API server does that before
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	}
	group, _ := schema.ParseGroupVersion(fmt.Sprint(unknown["apiVersion"]))
	ctx := request.WithNamespace(request.NewContext(), accessor.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: group.Group, APIVersion: group.Version})
	rest.FillObjectMetaSystemFields(accessor)
	return name, rest.BeforeCreate(strategy, ctx, object)
}

func checkFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	documents := yaml.NewDocumentDecoder(file)
	defer documents.Close()
	for {
		text := make([]byte, 1<<20)
		n, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if object, err := check(text[:n]); err != nil {
			fmt.Printf("%s: %s: %v\n", name, object, err)
		}
	}
}

func main() {
	for _, name := range os.Args[1:] {
		if err := checkFile(name); err != nil {
			fmt.Printf("%s: %v\n", name, err)
		}
	}
}
