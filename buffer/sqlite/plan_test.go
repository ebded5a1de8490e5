package sqlite

import (
	"strings"
	"testing"

	"github.com/spool-dev/spool/buffer"
)

// What names few runs is found by its own index, however many runs the caller has.
func TestList_GoesByTheIndexOfWhatIsNamed(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() // a store that was only read
	for _, row := range []struct {
		name  string
		f     buffer.Filter
		index string
	}{
		{"a key", buffer.Filter{Caller: "c", Key: "k"}, "keys"},
		{"a provider's id", buffer.Filter{Caller: "c", ProviderID: "resp_1"}, "calls_provider_id"},
		{"a body", buffer.Filter{Caller: "c", BodyHash: "h"}, "calls_body"},
		{"a caller", buffer.Filter{Caller: "c"}, "runs_of_caller"},
		{"nothing", buffer.Filter{}, "runs_newest"},
	} {
		t.Run(row.name, func(t *testing.T) {
			where, args := matching(row.f)
			if plan := explain(t, s, listing(row.f, where), append(args, 10)); !strings.Contains(plan, row.index) {
				t.Errorf("the plan does not go by %s:\n%s", row.index, plan)
			}
		})
	}
}

// The rows of a page are added one by one as they are scanned: none is sorted, which would read all of them first.
func TestRead_SortsNothing(t *testing.T) {
	s := openHidden(t, t.TempDir())
	for query, by := range map[string]string{selectSegments: "SEARCH segments USING INDEX", selectArrivalsOf: "SCAN arrivals"} {
		plan := explain(t, s, query, []any{1, 0, 0})
		if !strings.Contains(plan, by) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("the plan of %s is\n%s", query, plan)
		}
	}
	must(t, s.Close())
}

func explain(t *testing.T, s *Store, query string, args []any) string {
	t.Helper()
	rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() // Err below says whether all came
	var plan strings.Builder
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan.String()
}
