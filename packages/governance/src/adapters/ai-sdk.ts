export { aiSdkModel } from './ai-sdk-model.ts'
export { type AiSdkTool, aiSdkTools } from './ai-sdk-tools.ts'
