export { fromPydanticAI, type PydanticImport } from './import.ts'
export { PydanticExportError, toPydanticAI, toPydanticAIText } from './export.ts'
export type { PydanticMessage } from './types.ts'
export {
  createConfigStore,
  loadConfigs,
  type ConfigStore,
  type MemoryConfigStore,
} from './config-store.ts'
