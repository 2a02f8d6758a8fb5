export { fromPydanticAI, type FromPydanticOptions } from './import.ts'
export {
  PydanticExportError,
  systemPromptRequest,
  toPydanticAI,
  toPydanticAIText,
  type ExportPolicy,
  type ToPydanticOptions,
} from './export.ts'
export type { PydanticMessage } from './types.ts'
export {
  configRef,
  configRefs,
  createConfigStore,
  loadConfigs,
  type ConfigStore,
  type MemoryConfigStore,
} from './config-store.ts'
