package packages

import (
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	v2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

const chart = "../../deploy/helm/spool"

// installations are ways to install the chart, by what they set.
var installations = map[string]map[string]any{
	"as it is": {},
	"all of it": {
		"nameOverride": "buffer", "graceSeconds": 60, "podAnnotations": map[string]any{"a": "b"},
		"config":           map[string]any{"ttl": "2h"},
		"secretConfig":     map[string]any{"auth": map[string]any{"keys": map[string]any{"agent": "a-key-of-sixteen-or-more"}}, "admin": map[string]any{"key": "another-of-sixteen"}},
		"persistence":      map[string]any{"storageClass": "fast"},
		"networkPolicy":    map[string]any{"callers": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
		"serviceMonitor":   map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"imagePullSecrets": []any{map[string]any{"name": "pull"}},
		"nodeSelector":     map[string]any{"disk": "fast"},
	},
	"a cluster": {
		"cluster": map[string]any{
			"enabled": true, "store": "nats://nats-0.nats:4222,nats://nats-1.nats:4222", "monitors": []any{"http://nats-0.nats:8222"}, "credentialsSecret": "nats",
		},
		"secretConfig": map[string]any{"secret": "a-secret-of-all-pods-of-the-cluster"},
	},
	"with a secret that exists": {"existingSecret": "mine", "networkPolicy": map[string]any{"enabled": false}},
}

func TestChart_LintsAndRenders(t *testing.T) {
	for name, values := range installations {
		t.Run(name, func(t *testing.T) {
			linted := lint.RunAll(chart, values, "agents")
			for _, m := range linted.Messages {
				t.Errorf("lint: %s", m.Error())
			}
			objects := render(t, values)
			checkPod(t, objects)
			if got, want := objects["Secret"] != nil, values["existingSecret"] == nil; got != want {
				t.Errorf("a Secret: %v, want %v", got, want)
			}
			if got, want := objects["ServiceMonitor"] != nil, values["serviceMonitor"] != nil; got != want {
				t.Errorf("a ServiceMonitor: %v, want %v", got, want)
			}
		})
	}
}

// A release's chart runs the image of the release.
func TestChart_OfAReleaseHasItsVersion(t *testing.T) {
	for version, plain := range map[string]string{"1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1"} {
		dir := t.TempDir()
		if out, err := exec.CommandContext(t.Context(), "../../.ci/release", "--chart", version, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		c, err := loader.Load(filepath.Join(dir, "spool-"+plain+".tgz"))
		if err != nil {
			t.Fatal(err)
		}
		if c.Metadata.Version != plain || c.Metadata.AppVersion != version {
			t.Errorf("release %s: version %s, appVersion %s", version, c.Metadata.Version, c.Metadata.AppVersion)
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		if image := podOf(t, rendered(t, c, nil)).Containers[0].Image; image != "ghcr.io/spool-dev/spool:"+version {
			t.Errorf("release %s runs %s", version, image)
		}
	}
	for _, version := range []string{"", "check", "1.2", "1.2.3+build", "1.2.3-"} {
		if err := exec.CommandContext(t.Context(), "../../.ci/release", "--chart", version, t.TempDir()).Run(); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
	}
}

// What the chart cannot do anything with is refused before anything is installed, by its name.
func TestChart_WrongValuesAreRefused(t *testing.T) {
	short := strings.Repeat("x", 31)
	for name, values := range map[string]map[string]any{
		"/secretConfig/secret":          {"secretConfig": map[string]any{"secret": short}},
		"/secretConfig/previous_secret": {"secretConfig": map[string]any{"previous_secret": short}},
		"/config/secret":                {"config": map[string]any{"secret": short}},
		"/secretConfig/admin/key":       {"secretConfig": map[string]any{"admin": map[string]any{"key": "short"}}},
		"/secretConfig/auth/keys/a":     {"secretConfig": map[string]any{"auth": map[string]any{"keys": map[string]any{"a": "short"}}}},
		"/graceSeconds":                 {"graceSeconds": "5m"},
		"/marginSeconds":                {"marginSeconds": 5},
		"/cluster/store":                {"cluster": map[string]any{"store": "nats-0:4222"}},
		"/service/port":                 {"service": map[string]any{"port": 99999}},
		"'imagee'":                      {"imagee": map[string]any{}},
		"'secret'":                      {"secret": map[string]any{}},
	} {
		c, err := loader.Load(chart)
		if err != nil {
			t.Fatal(err)
		}
		_, err = util.ToRenderValues(c, values, common.ReleaseOptions{Name: "spool", Namespace: "agents"}, nil)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, want %s", values, err, name)
		}
	}
}

// A secret that is empty is none, as in the reference of all settings, which is a file to begin with.
func TestChart_EmptySecretsAreNone(t *testing.T) {
	render(t, map[string]any{"config": map[string]any{"secret": "", "previous_secret": "", "admin": map[string]any{"key": ""}}})
}

// render gives the objects by kind, each read strictly: a field that Kubernetes does not know is an error.
func render(t *testing.T, values map[string]any) map[string][]any {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	return rendered(t, c, values)
}

func rendered(t *testing.T, c *v2.Chart, values map[string]any) map[string][]any {
	t.Helper()
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: "spool", Namespace: "agents", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]any{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(files[name])))
		for b := make([]byte, 1<<20); ; {
			n, err := documents.Read(b)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if strings.TrimSpace(string(b[:n])) != "" {
				add(t, objects, name, b[:n])
			}
		}
	}
	return objects
}

func add(t *testing.T, objects map[string][]any, name string, document []byte) {
	t.Helper()
	var head struct{ Kind string }
	if err := strict.Unmarshal(document, &head); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, document)
	}
	kinds := map[string]any{
		"StatefulSet": &apps.StatefulSet{}, "Deployment": &apps.Deployment{}, "Job": &batch.Job{}, "PodDisruptionBudget": &policy.PodDisruptionBudget{},
		"Service": &core.Service{}, "Secret": &core.Secret{},
		"ServiceAccount": &core.ServiceAccount{}, "NetworkPolicy": &networking.NetworkPolicy{},
		"ServiceMonitor": &map[string]any{}, // its types are the operator's
	}
	o, known := kinds[head.Kind]
	if !known {
		t.Fatalf("%s: kind %q is not known", name, head.Kind)
	}
	if err := strict.UnmarshalStrict(document, o); err != nil {
		t.Errorf("%s: %v\n%s", name, err, document)
	}
	objects[head.Kind] = append(objects[head.Kind], o)
}

// podOf is the pod of one folder, or of a cluster.
func podOf(t *testing.T, objects map[string][]any) core.PodSpec {
	t.Helper()
	sets, deployments := objects["StatefulSet"], objects["Deployment"]
	if len(sets)+len(deployments) != 1 {
		t.Fatalf("%d StatefulSets, %d Deployments", len(sets), len(deployments))
	}
	if len(deployments) == 1 {
		d := deployments[0].(*apps.Deployment)
		if *d.Spec.Replicas != 3 || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
			t.Errorf("a cluster of %d that rolls so: %v", *d.Spec.Replicas, d.Spec.Strategy)
		}
		checkStore(t, d.Spec.Template.Spec.Containers[0])
		checkStore(t, objects["Job"][0].(*batch.Job).Spec.Template.Spec.Containers[0])
		return d.Spec.Template.Spec
	}
	set := sets[0].(*apps.StatefulSet)
	if set.Spec.Replicas == nil || *set.Spec.Replicas != 1 {
		t.Error("the log has one writer: want one replica")
	}
	if len(set.Spec.VolumeClaimTemplates) != 1 {
		t.Error("no volume")
	}
	return set.Spec.Template.Spec
}

// checkStore checks that a container is told where the log is.
func checkStore(t *testing.T, c core.Container) {
	t.Helper()
	for _, name := range []string{"SPOOL_STORE", "SPOOL_STORE_NAME", "SPOOL_STORE_MONITOR", "SPOOL_STORE_CREDENTIALS"} {
		if !slices.ContainsFunc(c.Env, func(e core.EnvVar) bool { return e.Name == name && e.Value != "" }) {
			t.Errorf("container %s lacks %s", c.Name, name)
		}
	}
}

// checkPod checks what must hold of the pod, however the chart is installed.
func checkPod(t *testing.T, objects map[string][]any) {
	t.Helper()
	pod := podOf(t, objects)
	c := pod.Containers[0]
	for _, p := range []*core.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p == nil || p.HTTPGet == nil {
			t.Error("a probe is missing")
		}
	}
	// The `restricted` profile of Pod Security.
	if s := pod.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		t.Errorf("the pod's security context: %v", s)
	}
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		!slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) {
		t.Errorf("the container's security context: %v", s)
	}
	i := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "SPOOL_GRACE" })
	if i < 0 || !fits(t, c.Env[i].Value, *pod.TerminationGracePeriodSeconds) {
		t.Errorf("the pod is killed after %d s, the grace is %v", *pod.TerminationGracePeriodSeconds, c.Env)
	}
}
