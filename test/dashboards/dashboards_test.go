// Package dashboards checks the Grafana dashboard and the alert rules of deploy against what a running
// Spool exports. It is a module of its own, for the dependencies of PromQL's parser.
package dashboards

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/spool-dev/spool/test/rig"
)

// expression is a query, and where it stands.
type expression struct{ where, text string }

// dashboard holds the queries of the Grafana dashboard, with its variables filled in as Grafana does.
func dashboard(t *testing.T) (all []expression) {
	t.Helper()
	var d struct {
		Templating struct {
			List []struct{ Name, Query string }
		}
		Panels []struct {
			Title, Description string
			Targets            []struct{ Expr, LegendFormat string }
		}
	}
	text, err := os.ReadFile("../../deploy/grafana/spool.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$__rate_interval", "1m", "$__range", "6h", "$instance", ".*", "$route", ".*")
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q says nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, expression{p.Title, fill.Replace(target.Expr)})
			for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, "by (") || !strings.Contains(target.Expr, label[1]) {
					t.Errorf("%s: its legend names %s, which its query does not keep", p.Title, label[1])
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if inner, ok := strings.CutPrefix(v.Query, "label_values("); ok {
			metric, label, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ", ")
			all = append(all, expression{"variable " + v.Name, "count by (" + label + ") (" + metric + ")"})
		}
	}
	return all
}

// alerts holds the queries of the alert rules.
func alerts(t *testing.T) (all []expression) {
	t.Helper()
	var a struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range a.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("alert %q lacks its severity, summary or description", r.Alert)
			}
			all = append(all, expression{r.Alert, r.Expr})
		}
	}
	return all
}

// exported is the labels of every metric that a running Spool serves.
func exported(t *testing.T) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	for line := range strings.Lines(rig.New(t, rig.Options{}).Figures()) {
		m := regexp.MustCompile(`^(\w+)(?:{(.*)})? `).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if out[m[1]] == nil {
			out[m[1]] = map[string]bool{"instance": true, "job": true} // Prometheus adds them
		}
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(m[2], -1) {
			out[m[1]][label[1]] = true
		}
	}
	return out
}

// Every query is PromQL, and every metric and label that it names is one that a running Spool exports.
// Every metric is on the dashboard.
func TestDashboardAndAlerts_AskForWhatIsExported(t *testing.T) {
	have, asked := exported(t), map[string]bool{}
	queries := slices.Concat(dashboard(t), alerts(t))
	if len(queries) < 20 {
		t.Fatalf("%d queries", len(queries))
	}
	for _, q := range queries {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(q.text)
		if err != nil {
			t.Errorf("%s: %s: %v", q.where, q.text, err)
			continue
		}
		labels, named := map[string]bool{}, map[string]bool{}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.VectorSelector:
				asked[n.Name], named[n.Name] = true, true
				if have[n.Name] == nil {
					t.Errorf("%s: nothing exports %s", q.where, n.Name)
				}
				for _, m := range n.LabelMatchers {
					if m.Name != "__name__" && !have[n.Name][m.Name] {
						t.Errorf("%s: %s has no label %s", q.where, n.Name, m.Name)
					}
				}
			case *parser.AggregateExpr:
				for _, label := range n.Grouping {
					labels[label] = true
				}
			}
			return nil
		})
		for label := range labels {
			for name := range named {
				if !have[name][label] {
					t.Errorf("%s: %s has no label %s to group by", q.where, name, label)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if strings.HasPrefix(name, "spool_") && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") && !asked[name] {
			t.Errorf("%s is on no panel and in no alert", name)
		}
	}
}
