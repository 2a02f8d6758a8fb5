// The whole counts of backup.test.ts: see `countOf`.
import './backup.test.ts'
