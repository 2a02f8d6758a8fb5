import './deploy-check.test.ts'
