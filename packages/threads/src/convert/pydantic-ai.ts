export {
  fromPydanticAI,
  type FromPydanticOptions,
  type PydanticImport,
} from './pydantic-ai/import.ts'
export {
  PydanticExportError,
  systemPromptRequest,
  toPydanticAI,
  toPydanticAIText,
  type ExportPolicy,
  type ToPydanticOptions,
} from './pydantic-ai/export.ts'
export type { PydanticMessage, PydanticPart } from './pydantic-ai/types.ts'
export {
  configRef,
  configRefs,
  createConfigStore,
  loadConfigs,
  type ConfigStore,
  type MemoryConfigStore,
} from '../config-store.ts'
