export { toUppMessages } from './to-upp.ts'
export { fromUppMessages } from './from-upp.ts'
