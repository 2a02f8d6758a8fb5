// The whole counts of store-kill.test.ts: see `countOf`.
import './store-kill.test.ts'
