// The whole counts of tree-crash.test.ts: see `countOf`.
import './tree-crash.test.ts'
