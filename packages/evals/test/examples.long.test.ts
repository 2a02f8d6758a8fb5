import './examples.test.ts'
