// The whole counts of errors.test.ts: see `countOf`.
import './errors.test.ts'
