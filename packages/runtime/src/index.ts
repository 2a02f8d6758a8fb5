export * from './error.ts'
