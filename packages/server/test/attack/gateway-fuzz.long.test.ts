// The whole counts of gateway-fuzz.test.ts: see `countOf`.
import './gateway-fuzz.test.ts'
