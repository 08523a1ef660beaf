/** A row of data: numbers in the order of the features, or an object with their names. */
export type Row = readonly number[] | Float64Array | Float32Array;
/** What the model predicts. */
export type Answer = 0.0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;
/** What the model is. */
export declare const model: Readonly<{
  task: "classes";
  classes: Answer[];
  features: null;
  nFeatures: number;
  nVectors: number;
  kernel: string;
  digest: string;
}>;
/** The prediction for a row; a row that the model cannot read throws a TypeError or RangeError. */
export declare function predict(row: Row): Answer;
/** What decision_function gives in Python. */
export declare function decision(row: Row): number[];
/** The scores before an answer is made of them. */
export declare function scores(row: Row): number[];
/** The kernel value of every vector. */
export declare function kernelValues(row: Row): Float64Array;
/** What every vector adds to every score, vector by vector. */
export declare function contributions(row: Row): Float64Array;
