// The whole counts of context-window.test.ts: see `countOf`.
import './context-window.test.ts'
