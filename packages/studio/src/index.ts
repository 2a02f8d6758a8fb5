export { studioFiles, type StudioFile, type StudioFiles } from './files.ts'
