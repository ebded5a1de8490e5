package main

// The measures, with their units.
const (
	inRate     = "events/s"
	inCPU      = "CPU, µs/event"
	inAllocs   = "allocations/event"
	inDelay    = "delay p50, ms"
	inDelay99  = "delay p99, ms"
	inFirst50  = "first event p50, ms"
	inFirst99  = "first event p99, ms"
	inResident = "resident KiB/stream"
	inWake50   = "commit to last wake p50, ms"
	inWake99   = "commit to last wake p99, ms"
	inReads    = "read calls/event"
	inSpeed    = "MB/s"
	inKept     = "disk, bytes/byte of event"
	inWAL      = "WAL, bytes/byte of event"
	inWritten  = "written in all, bytes/byte of event"
	inQuiet    = "commit p99.9, ms"
	inRelease  = "commit p99.9 while chunks are released, ms"
	inReleased = "chunks released/s"
	inGrown    = "file, after 3 generations to after the first"
	inStart    = "start, s"
)

// measureOf is one number of a measurement that is worth a line.
type measureOf struct {
	name string // with its unit
	of   func(outcome) float64
}

// measuresOf says what the numbers of a scenario are read for.
func measuresOf(k kind) []measureOf {
	rate := measureOf{inRate, func(o outcome) float64 { return share(float64(o.Events), o.Seconds) }}
	cpu := measureOf{inCPU, func(o outcome) float64 { return 1e6 * share(o.TargetCPU, float64(o.Events)) }}
	allocs := measureOf{inAllocs, func(o outcome) float64 { return share(o.Allocations, float64(o.Events)) }}
	delay := []measureOf{
		{inDelay, func(o outcome) float64 { return o.LatencyP50 / 1000 }},
		{inDelay99, func(o outcome) float64 { return o.LatencyP99 / 1000 }},
	}
	firsts := []measureOf{
		{inFirst50, func(o outcome) float64 { return o.FirstP50 / 1000 }},
		{inFirst99, func(o outcome) float64 { return o.FirstP99 / 1000 }},
	}
	perByte := func(n func(outcome) int64) func(outcome) float64 {
		return func(o outcome) float64 { return share(float64(n(o)), float64(o.Bytes)) }
	}
	switch k {
	case flat:
		return []measureOf{rate, cpu, allocs}
	case paced:
		return append(delay, cpu, rate, allocs)
	case costs:
		return append([]measureOf{cpu, rate}, delay...)
	case first:
		return firsts
	case wake:
		return []measureOf{
			{inWake50, func(o outcome) float64 { return o.LatencyP50 / 1000 }},
			{inWake99, func(o outcome) float64 { return o.LatencyP99 / 1000 }},
			{inReads, func(o outcome) float64 { return o.Reads }},
		}
	case catchup:
		return append([]measureOf{{inSpeed, func(o outcome) float64 { return share(float64(o.Bytes)/1e6, o.Seconds) }}}, firsts...)
	case logged:
		return []measureOf{
			{inKept, perByte(func(o outcome) int64 { return o.Kept })},
			{inWAL, perByte(func(o outcome) int64 { return o.WAL })},
			{inWritten, perByte(func(o outcome) int64 { return o.Written })},
		}
	case retain:
		return []measureOf{
			{inQuiet, func(o outcome) float64 { return o.LatencyP999 / 1000 }},
			{inRelease, func(o outcome) float64 { return o.ReleasingP999 / 1000 }},
			{inReleased, rate.of},
			{inGrown, func(o outcome) float64 { return o.Grown }},
		}
	case startup:
		return []measureOf{{inStart, func(o outcome) float64 { return o.Start }}}
	}
	return []measureOf{{inResident, func(o outcome) float64 { return o.Resident / 1024 }}}
}

func share(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
