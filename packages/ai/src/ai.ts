import { embedding } from './embedding.ts'
import { image } from './image.ts'
import { llm } from './llm.ts'

/** The three modalities under one name (UPP §3.2): `ai.llm`, `ai.embedding`, `ai.image`. */
export const ai: {
  readonly llm: typeof llm
  readonly embedding: typeof embedding
  readonly image: typeof image
} = { llm, embedding, image }
