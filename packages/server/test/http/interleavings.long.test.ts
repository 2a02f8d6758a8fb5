// The whole counts of interleavings.test.ts: see `countOf`.
import './interleavings.test.ts'
