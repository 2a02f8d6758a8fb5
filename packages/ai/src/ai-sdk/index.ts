export { fromAiSdk } from './from-ai-sdk.ts'
export { toAiSdk, type AiSdkProviderModel } from './to-ai-sdk.ts'
export type { AiSdkModel } from './types.ts'
