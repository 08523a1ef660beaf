// Two classes in the plane, answered by a kernel machine of 22 bytes: type two numbers, such as "-0.3 0.7", and read the class.
// model.h was made by ../make.py. Integers only: an Arduino Uno needs no floating point for it, but for reading the numbers.

#include "model.h"

void setup() {
  Serial.begin(9600);
  Serial.println(F("x y?"));
}

void loop() {
  if (!Serial.available()) return;
  model_input x[MODEL_N_FEATURES];
  for (size_t k = 0; k < MODEL_N_FEATURES; ++k) x[k] = model_quantise(Serial.parseFloat(), k);
  while (Serial.available()) Serial.read();
  model_score scores[MODEL_N_SCORES];
  model_scores(x, scores);
  Serial.print(model_label(model_predict(x)));
  Serial.print(F(", score "));
  Serial.println(model_real(scores[0]), 3);
}
