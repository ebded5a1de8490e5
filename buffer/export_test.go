package buffer

// FillRests leaves no room in memory for what a log refuses, until free is called.
func (rs *Runs) FillRests() (free func()) {
	full := rs.rests.begin(Run{})
	rs.rests.take(full, maxRests)
	return func() { rs.rests.drop(full.run.ID) }
}
