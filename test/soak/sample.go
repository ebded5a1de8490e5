package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// sample is what the service takes at one moment.
type sample struct {
	at         time.Time
	resident   float64 // bytes
	heap       float64 // bytes in use
	goroutines float64
	handles    float64
	disk       float64 // bytes of the data folder
	inUse      float64 // bytes of the log's file that hold something
	live       float64 // runs
	tails      float64
}

// gauge is one of its figures.
type gauge struct {
	name  string
	bytes bool
	of    func(*sample) *float64
}

// filesGauge is the one that need not return: the log's file does not shrink by itself.
const filesGauge = "disk, files"

var gauges = []gauge{
	{"memory, resident", true, func(s *sample) *float64 { return &s.resident }},
	{"memory, heap in use", true, func(s *sample) *float64 { return &s.heap }},
	{"goroutines", false, func(s *sample) *float64 { return &s.goroutines }},
	{"file handles", false, func(s *sample) *float64 { return &s.handles }},
	{"disk, in use", true, func(s *sample) *float64 { return &s.inUse }},
	{filesGauge, true, func(s *sample) *float64 { return &s.disk }},
	{"live runs", false, func(s *sample) *float64 { return &s.live }},
	{"open readers", false, func(s *sample) *float64 { return &s.tails }},
}

// most has the higher one of each figure.
func (s sample) most(o sample) sample {
	for _, g := range gauges {
		*g.of(&s) = max(*g.of(&s), *g.of(&o))
	}
	return s
}

// meter asks the service's process and its admin listener.
type meter struct {
	proc  procfs.Proc
	log   *sql.DB
	admin string
	http  *http.Client // without a connection that would stay and be counted
}

func newMeter(pid int, admin, dir string) (*meter, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return nil, err
	}
	log, err := openLog(dir)
	return &meter{p, log, admin, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}, err
}

func (m *meter) sample(ctx context.Context) (s sample, err error) {
	s.at = time.Now()
	stat, err := m.proc.Stat()
	if err != nil {
		return s, err
	}
	handles, err := m.proc.FileDescriptorsLen()
	if err != nil {
		return s, err
	}
	s.resident, s.handles = float64(stat.ResidentMemory()), float64(handles)
	resp, err := m.http.Get(m.admin + "/metrics")
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return s, err
	}
	for name, to := range map[string]*float64{
		"go_memstats_heap_inuse_bytes": &s.heap, "go_goroutines": &s.goroutines, "spool_disk_used_bytes": &s.disk,
		"spool_live_runs": &s.live, "spool_open_tails": &s.tails,
	} {
		f := families[name]
		if f == nil {
			return s, fmt.Errorf("%s/metrics: no %s", m.admin, name)
		}
		*to = f.GetMetric()[0].GetGauge().GetValue()
	}
	s.inUse, err = inUse(ctx, m.log)
	return s, err
}

// collect has the service collect its garbage.
func (m *meter) collect() error {
	resp, err := m.http.Get(m.admin + "/debug/pprof/heap?gc=1")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
