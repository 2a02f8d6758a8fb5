// Runs tree-crash.test.ts with full counts: see `countOf`.
import './tree-crash.test.ts'
