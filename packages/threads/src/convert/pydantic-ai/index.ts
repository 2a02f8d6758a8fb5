export { fromPydanticAI, type FromPydanticOptions, type PydanticImport } from './import.ts'
export {
  PydanticExportError,
  systemPromptRequest,
  toPydanticAI,
  toPydanticAIText,
  type ExportPolicy,
  type ToPydanticOptions,
} from './export.ts'
export type { PydanticMessage, PydanticPart } from './types.ts'
export {
  configRef,
  configRefs,
  createConfigStore,
  loadConfigs,
  type ConfigStore,
  type MemoryConfigStore,
} from './config-store.ts'
