export { fromPydanticAI, type FromPydanticOptions } from './import.ts'
export {
  PydanticExportError,
  toPydanticAI,
  toPydanticAIText,
  type ToPydanticOptions,
} from './export.ts'
export type { PydanticMessage } from './types.ts'
export {
  configRef,
  createConfigStore,
  loadConfigs,
  type ConfigStore,
  type MemoryConfigStore,
} from './config-store.ts'
