// The whole counts of folder-lock.test.ts: see `countOf`.
import './folder-lock.test.ts'
