// The whole counts of kill.test.ts: see `countOf`.
import './kill.test.ts'
