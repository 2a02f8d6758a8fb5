export { uppModel } from './upp-model.ts'
export { type UppTool, uppTools } from './upp-tools.ts'
