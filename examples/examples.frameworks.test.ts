import { testExamples } from '../scripts/examples/example-tests.ts'

testExamples('frameworks')
